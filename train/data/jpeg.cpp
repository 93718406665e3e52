// SPDX-License-Identifier: Apache-2.0
#include "data/jpeg.h"

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <jerror.h>
#include <jpeglib.h>

namespace joulemark::train {
namespace {

/// libjpeg reports a fatal error by calling error_exit, which must not return: it jumps back here. Functions
/// that set the jump hold no objects with destructors beyond it.
struct Errors : jpeg_error_mgr {
    Errors() {
        jpeg_std_error(this);
        error_exit = [](j_common_ptr info) {
            auto& self = *static_cast<Errors*>(info->err);
            info->err->format_message(info, self.text);
            std::longjmp(self.jump, 1);
        };
        // Warnings are silent; those that mean lost image data are fatal, the others (stray bytes between
        // markers, unknown versions) are met in good files.
        emit_message = [](j_common_ptr info, int level) {
            const int code = info->err->msg_code;
            if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
                              code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC)) {
                info->err->error_exit(info);
            }
        };
    }
    std::jmp_buf jump;
    char text[JMSG_LENGTH_MAX] = {};
};

struct Decompressor : jpeg_decompress_struct {
    explicit Decompressor(Errors& errors) {
        err = &errors;
        jpeg_create_decompress(this);
    }
    ~Decompressor() { jpeg_destroy_decompress(this); }
    Decompressor(const Decompressor&) = delete;
    Decompressor& operator=(const Decompressor&) = delete;
};

bool read_header(Decompressor& decoder, Errors& errors, std::span<const std::uint8_t> file) {
    if (setjmp(errors.jump) != 0) {
        return false;
    }
    jpeg_mem_src(&decoder, file.data(), file.size());
    jpeg_read_header(&decoder, TRUE);
    return true;
}

/// Begins decoding with columns begin..begin+width (widened to whole blocks by libjpeg, hence in and out) and
/// skips `rows`.
bool start(Decompressor& decoder, Errors& errors, JDIMENSION& begin, JDIMENSION& width, JDIMENSION rows) {
    if (setjmp(errors.jump) != 0) {
        return false;
    }
    jpeg_start_decompress(&decoder);
    if (width < decoder.output_width) {
        jpeg_crop_scanline(&decoder, &begin, &width);
    }
    if (rows > 0) {
        jpeg_skip_scanlines(&decoder, rows);
    }
    return true;
}

bool read_rows(Decompressor& decoder, Errors& errors, std::uint8_t* pixels, std::size_t stride,
               JDIMENSION rows) {
    if (setjmp(errors.jump) != 0) {
        return false;
    }
    for (JDIMENSION row = 0; row < rows;) {
        JSAMPROW line = pixels + row * stride;
        row += jpeg_read_scanlines(&decoder, &line, 1);
    }
    return true;
}

/// Entropy-coded data never contains the end-of-image marker, so a file without one behind its first scan was
/// cut.
bool has_end(const Decompressor& decoder) {
    const std::uint8_t* at = decoder.src->next_input_byte;
    for (std::size_t left = decoder.src->bytes_in_buffer; left >= 2; --left) {
        if (at[left - 2] == 0xFF && at[left - 1] == JPEG_EOI) {
            return true;
        }
    }
    return false;
}

/// The largest reduction by libjpeg's fast sizes that leaves the box at least as large as the target.
unsigned reduction_for(const Box& box, int target_width, int target_height) {
    unsigned reduction = 1;
    while (reduction < 8 && box.width / (reduction * 2) >= target_width &&
           box.height / (reduction * 2) >= target_height) {
        reduction *= 2;
    }
    return reduction;
}

/// Adobe writes CMYK inverted: 255 is no ink.
void cmyk_to_rgb(const std::vector<std::uint8_t>& cmyk, std::vector<std::uint8_t>& rgb) {
    rgb.resize(cmyk.size() / 4 * 3);
    for (std::size_t pixel = 0; pixel < cmyk.size() / 4; ++pixel) {
        const unsigned key = cmyk[4 * pixel + 3];
        for (std::size_t channel = 0; channel < 3; ++channel) {
            rgb[3 * pixel + channel] = static_cast<std::uint8_t>(cmyk[4 * pixel + channel] * key / 255);
        }
    }
}

}  // namespace

Result<DecodedCrop> decode_jpeg(std::span<const std::uint8_t> file, const ChooseCrop& choose,
                                int target_width, int target_height) {
    Errors errors;
    Decompressor decoder(errors);
    const auto failure = [&] { return Failure{errors.text, "replace or remove the file"}; };
    if (!read_header(decoder, errors, file)) {
        return failure();
    }
    if (!has_end(decoder)) {
        return Failure{"the file ends before the image does", "replace or remove the file"};
    }
    const bool cmyk = decoder.jpeg_color_space == JCS_CMYK || decoder.jpeg_color_space == JCS_YCCK;
    decoder.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;

    const Box wanted = choose(static_cast<int>(decoder.image_width), static_cast<int>(decoder.image_height));
    const unsigned reduction = reduction_for(wanted, target_width, target_height);
    decoder.scale_num = 1;
    decoder.scale_denom = reduction;
    jpeg_calc_output_dimensions(&decoder);

    // The rectangle in reduced pixels, and the whole pixels that cover it.
    Box box{wanted.x / reduction, wanted.y / reduction, wanted.width / reduction, wanted.height / reduction};
    auto first_column = static_cast<JDIMENSION>(box.x);
    const auto first_row = static_cast<JDIMENSION>(box.y);
    const auto end_column =
        std::min(decoder.output_width, static_cast<JDIMENSION>(std::ceil(box.x + box.width)));
    const auto end_row =
        std::min(decoder.output_height, static_cast<JDIMENSION>(std::ceil(box.y + box.height)));
    JDIMENSION columns = end_column - first_column;
    const JDIMENSION rows = end_row - first_row;
    if (!start(decoder, errors, first_column, columns, first_row)) {
        return failure();
    }

    const std::size_t channels = cmyk ? 4 : 3;
    const std::size_t stride = channels * decoder.output_width;
    std::vector<std::uint8_t> pixels(stride * rows);
    if (!read_rows(decoder, errors, pixels.data(), stride, rows)) {
        return failure();
    }
    DecodedCrop crop;
    if (cmyk) {
        cmyk_to_rgb(pixels, crop.pixels);
    } else {
        crop.pixels = std::move(pixels);
    }
    const auto width = static_cast<int>(decoder.output_width);
    box.x -= static_cast<double>(first_column);
    box.y -= static_cast<double>(first_row);
    crop.view = {crop.pixels.data(), width, static_cast<int>(rows), 3 * static_cast<std::ptrdiff_t>(width)};
    crop.box = box;
    return crop;
}

std::vector<std::uint8_t> encode_jpeg(const ImageView& image, int quality) {
    jpeg_compress_struct encoder{};
    jpeg_error_mgr errors{};
    encoder.err = jpeg_std_error(&errors);
    jpeg_create_compress(&encoder);
    unsigned char* buffer = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&encoder, &buffer, &size);
    encoder.image_width = static_cast<JDIMENSION>(image.width);
    encoder.image_height = static_cast<JDIMENSION>(image.height);
    encoder.input_components = 3;
    encoder.in_color_space = JCS_RGB;
    jpeg_set_defaults(&encoder);
    jpeg_set_quality(&encoder, quality, TRUE);
    jpeg_start_compress(&encoder, TRUE);
    while (encoder.next_scanline < encoder.image_height) {
        JSAMPROW line = const_cast<JSAMPROW>(image.pixels + encoder.next_scanline * image.stride);
        jpeg_write_scanlines(&encoder, &line, 1);
    }
    jpeg_finish_compress(&encoder);
    std::vector<std::uint8_t> bytes(buffer, buffer + size);
    std::free(buffer);
    jpeg_destroy_compress(&encoder);
    return bytes;
}

}  // namespace joulemark::train
